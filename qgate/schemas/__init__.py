"""The values that flow between the rooms. Data only."""
