"""Errors that a user can put right."""


class UserError(ValueError):
    """A mistake in the command, its files or their contents; the message is one sentence that says what to do.

    fairseq as scripts/build_fairseq.py mends it prints such an error as it is, without a traceback.
    """

    is_user_error = True
