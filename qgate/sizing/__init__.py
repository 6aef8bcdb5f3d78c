"""What a server takes of a GPU, and which servers fit on which GPUs at a time. Pure: numbers in, numbers out."""
