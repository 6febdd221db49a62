"""The matching engines of the papers, each as its paper describes it, behind the port of all engines."""
