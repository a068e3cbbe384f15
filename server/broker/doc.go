// Package broker does what service brokers are asked for: it reads catalogs,
// and makes, changes, binds and deletes service instances.
//
// The API writes what is wanted: a row whose last operation is in progress, and
// a job. The Loop of this package finds the job and takes it through its steps:
// it asks the broker, asks after what the broker does asynchronously, and writes
// how it ended into row, job and audit event. Each step is one request to the
// broker and one transaction after it; between steps everything is in the
// database. A step that was interrupted is made again, which the Open Service
// Broker API allows for every request. What a broker may have made for a
// request that failed, an orphan, is deleted at the broker until it says that
// it is gone.
package broker
