"""One module per verb of the command line: parsed arguments in, exit code out."""
