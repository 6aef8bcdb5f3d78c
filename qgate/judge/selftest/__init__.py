"""The gate's own error rates, by simulation: seeds in, a table out. Touches nothing."""
