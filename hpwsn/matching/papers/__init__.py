"""The matching engines of the papers, each as its paper describes it. Pure."""
