// Package databroker is the built-in service broker: databases for demos, each a
// container of this machine with a volume of its own. It speaks the Open Service
// Broker API 2.17 and nothing else, so that the platform treats it as any broker.
//
// What there is to be is rows. From them follows what runs (desired), who may
// connect (policies) and under which names (Hosts); Run brings volumes and the
// databases' own users to where the rows say. Whatever is killed in between, the
// next Run goes on from the rows.
package databroker
