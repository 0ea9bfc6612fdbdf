"""Programs written with mrjob, as their users write them; started as scripts."""
