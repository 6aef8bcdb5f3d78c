"""Pure: from a run and its verdict sheet to terminal, HTML, JUnit, Markdown and a table."""
