package lrp

// CausePrefix begins a line that the cell writes to an app's log when it knows why the app did not start, and how to mend it.
const CausePrefix = "Cause: "
