"""One file per family of forms; each exposes ``detect(view) -> list[Form]`` and knows nothing of its siblings."""
