"""Pages of the inbox: fetch through the user, bind, call one verb, render."""
