"""Where tables come from: files and frames. The only room that knows dataframes and engines."""
