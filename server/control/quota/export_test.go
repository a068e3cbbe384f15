package quota

import "cupola/server/control"

// UsageNow is what the session's verbs take for the usage.
var UsageNow = usageNow

// Reads is how often the session counted rows.
func Reads(c *control.Session) int { return control.Kept[ledger](c).reads }
