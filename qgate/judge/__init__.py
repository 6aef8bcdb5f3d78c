"""Pure: from rows and token scores to a verdict. No disk, clock, network, logger or hidden random state."""
