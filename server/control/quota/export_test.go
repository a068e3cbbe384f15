package quota

// UsageNow is what the session's verbs take for the usage.
var UsageNow = usageNow
