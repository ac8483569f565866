"""Speed, scale and accuracy, each as a ratio within one run."""
