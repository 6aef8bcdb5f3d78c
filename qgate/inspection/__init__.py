"""Pure: facts of a checkpoint in, findings out. A module per noun; no disk, clock or network."""
