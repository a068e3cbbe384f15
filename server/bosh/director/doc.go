// Package director moves BOSH deployments from their actual to their desired
// state: groups in order, canaries first, at most max_in_flight instances at
// once, each through its scripts in BOSH's order.
//
// world.step decides what to do next. It is pure, and depends only on rows: after a
// kill the next daemon continues. Loop does what step decides.
package director
