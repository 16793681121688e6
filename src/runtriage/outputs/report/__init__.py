"""A triage as text, Markdown, picture and page. Pure."""
