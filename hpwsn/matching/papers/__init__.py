"""The matching engines of the published papers, each as its paper describes it. Pure."""
