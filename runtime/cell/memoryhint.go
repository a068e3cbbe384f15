package cell

import "fmt"

// memoryHint says how much memory a container that ran out of it was given, and used.
func (p *performer) memoryHint() string {
	const mb = 1 << 20
	text := fmt.Sprintf("The app ran out of memory: its limit is %dM", p.spec.MemoryMB)
	if used, err := p.cell.cfg.Containers.Stats(p.guid()); err == nil && used.PeakBytes > 0 {
		text += fmt.Sprintf(", its peak was %dM", (used.PeakBytes+mb/2)/mb)
	}
	return text + "; give it more with 'cf scale -m'"
}
