"""Every page in every state: rows, what a person does there, and pictures of it (`bin/screenshots --all`)."""
