// Package bulkhead keeps one client, user or app from using up what all share:
// descriptors, connections and requests under way. Limits derives budgets from
// the number of files that the process may open; Share splits a budget so that
// something is always left for others; Strangers bounds the connections that
// have not said yet what they want.
//
// It also keeps the daemon's own memory within limits, and returns what work left behind.
package bulkhead
