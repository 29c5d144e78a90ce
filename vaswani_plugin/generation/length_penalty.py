"""The length penalty of the paper's beam search (section 6.1, after Wu et al. 2016, equation 14)."""


def length_penalty(length: int, alpha: float) -> float:
    """lp(n) = ((5 + n) / 6)^alpha for an output of n tokens, </s> counted; the score is log p / lp(n)."""
    return ((5 + length) / 6) ** alpha
