"""The shore: read histories from trackers, and read and apply marks."""
