"""Text before fairseq sees it: cleaning, vocabulary, segmentation. Needs neither torch nor fairseq."""
