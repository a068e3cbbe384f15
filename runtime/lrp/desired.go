package lrp

import "strings"

// The domains that Cloud Controller uses with Diego.
const (
	DomainApps    = "cf-apps"
	DomainTasks   = "cf-tasks"
	DomainStaging = "cf-app-staging"
)

// DomainServices is that of the service instances that run here.
const DomainServices = "cupola-services"

// bosh begins the domains of BOSH's deployments.
const bosh = "bosh."

// BOSHDomain is the domain of a deployment of BOSH's.
func BOSHDomain(deployment string) string { return bosh + deployment }

// OfBOSH reports whether a domain is that of a deployment.
func OfBOSH(domain string) bool { return strings.HasPrefix(domain, bosh) }

// Derived reports whether what a domain desires follows from our own rows: Cloud
// Controller's domains and our own. That of others is as they tell.
func Derived(domain string) bool {
	return domain == DomainApps || domain == DomainTasks || domain == DomainStaging || domain == DomainServices || OfBOSH(domain)
}

// Desired is Diego's DesiredLRP: this work, in this many instances.
type Desired struct {
	ProcessGUID string // unique: CF's process GUID and its version
	Domain      string
	Owner       Owner
	Instances   int
	// Unmonitored leaves instances that have ended as they are: none is started.
	Unmonitored bool
	RunInfo
}

// Owner is what desires a Desired, where its ProcessGUID does not tell: an instance
// of a BOSH deployment. The zero value is that of all others.
type Owner struct {
	GUID string
	Part string // of the owner: "job/process"
}

// Key names one instance of a Desired for as long as the Desired lives.
type Key struct {
	ProcessGUID string
	Index       int
}
