package doctor

import "cupola/runtime/lrp"

// Tunnels says of each cell that is a cluster whether requests reach what runs there.
func Tunnels(cells []lrp.CellUse) (results []Result) {
	for _, c := range cells {
		if c.Tunnel != "" {
			r := judgeTunnel(c.Cell)
			r.Name = "tunnel " + c.ID
			results = append(results, r)
		}
	}
	return results
}

func judgeTunnel(c lrp.Cell) Result {
	switch {
	case c.Problem != "":
		return Result{Level: Fail, Detail: c.Problem, Fix: c.Mend}
	case c.Unreachable:
		return warning("the daemon has not reached the cluster yet", "cupola cells   # shows why, if that stays so")
	case c.Tunnel == lrp.TunnelClosed:
		return warning("is being opened: requests to the pods wait for it", "cupola cells   # shows why, if that stays so")
	case c.Tunnel == lrp.TunnelOpen:
		return fine("is open: requests reach the pods by it")
	}
	return fine("is not needed: the pods answer at their addresses, or there are none")
}
