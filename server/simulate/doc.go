// Package simulate replays a synthetic fleet of cells and apps through
// reconcile.Plan, with its own clock and no effects: it shows how long a
// plan takes, how much it allocates and how well it places, at sizes that no
// one machine has.
package simulate
