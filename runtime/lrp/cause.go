package lrp

// CausePrefix begins a line that the cell writes to an app's log when it knows why the app did not start, and how to mend it.
const CausePrefix = "Cause: "

// WaitsPrefix begins the details of an instance that was placed, and whose cell knows why it does not start yet.
const WaitsPrefix = "Waiting: "
