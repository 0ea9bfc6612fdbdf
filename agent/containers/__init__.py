"""Starting, watching and ending the processes of tasks."""
