package lrp

// The domains that Cloud Controller uses with Diego.
const (
	DomainApps    = "cf-apps"
	DomainTasks   = "cf-tasks"
	DomainStaging = "cf-app-staging"
)

// OfCloudFoundry tells whether a domain is one of those that Cloud Controller
// uses.
func OfCloudFoundry(domain string) bool {
	return domain == DomainApps || domain == DomainTasks || domain == DomainStaging
}

// Desired is Diego's DesiredLRP: this work, in this many instances.
type Desired struct {
	ProcessGUID string // unique: CF's process GUID and its version
	Domain      string
	Instances   int
	RunInfo
}

// Key names one instance of a Desired for as long as the Desired lives.
type Key struct {
	ProcessGUID string
	Index       int
}
