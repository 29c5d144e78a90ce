"""All mutations."""

from attention_mutations import ATTENTION
from model_mutations import MODEL
from search_mutations import SEARCH
from tool_mutations import TOOLS
from training_mutations import TRAINING

CATALOGUE = [*ATTENTION, *MODEL, *TRAINING, *SEARCH, *TOOLS]
