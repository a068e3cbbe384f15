// Package director moves BOSH deployments from what runs to what was asked for:
// groups in their order, canaries first, no more instances at once than may be,
// each through its scripts in BOSH's order.
//
// Step says what is to be done next. It is pure, and all that it depends on is in
// rows: a daemon that was killed goes on where it was. Loop does what Step says.
package director
