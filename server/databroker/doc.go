// Package databroker is the built-in service broker: databases and operators' own services, each a
// container of this machine with a volume. It speaks the Open Service
// Broker API 2.17 and nothing else, so that the platform treats it as any broker.
//
// The rows hold the desired state. What runs (desired), who may connect (policies) and
// under which names (Hosts) is derived from them; Run reconciles volumes and the
// databases' users with them. If the daemon is killed meanwhile, the next Run
// continues from the rows.
package databroker
