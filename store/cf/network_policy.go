package cf

// NetworkPolicy lets the containers of one app connect to those of another.
type NetworkPolicy struct {
	Source      string // an app's GUID
	Destination string // an app's GUID
	Protocol    string // tcp or udp
	FirstPort   int    // 1 to 65535
	LastPort    int    // FirstPort or higher
}
