package api

import (
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// sleeping is the state of instances of an app that sleeps, frozen or stopped. Cloud
// Controller has none; clients show a state that they do not know as it is (cli:
// command/v7/shared/app_summary_displayer.go).
const sleeping = "SLEEPING"

// sleeps reports whether a process sleeps, which may have been foreseen.
func sleeps(c *call, p *cf.Process, app *cf.App) (bool, error) {
	if c.s.Asleep != nil && !c.s.Asleep(app.GUID) {
		return false, nil // a request has woken it, and the row is about to go
	}
	if s, ok := c.recalled[store.Sleeps.Name()+" "+p.GUID]; ok {
		row, _ := s.(*cf.Sleep)
		return desire.Sleeps(row, p, app), nil
	}
	rows, err := store.Sleeps.By(c.Tx, "guids", p.GUID)
	return err == nil && len(rows) > 0 && desire.Sleeps(rows[0], p, app), err
}

// sleepingLRPs are the LRPs of processes that sleep.
func sleepingLRPs(c *call) (map[string]bool, error) {
	rows, err := store.Sleeps.All(c.Tx)
	all := map[string]bool{}
	for _, s := range rows {
		all[s.LRP] = true
	}
	return all, err
}

// foreseeSleeps gets which of the processes sleep, all at once.
func foreseeSleeps(c *call, processes []*cf.Process) error {
	rows, err := store.Sleeps.By(c.Tx, "guids", control.GUIDs(processes, func(p *cf.Process) string { return p.GUID })...)
	of := map[string]*cf.Sleep{}
	for _, s := range rows {
		of[s.ProcessGUID] = s
	}
	for _, p := range processes {
		c.remember(store.Sleeps.Name(), p.GUID, of[p.GUID])
	}
	return err
}

// inSleep gives an instance of a process that sleeps that state; one that stops, or
// crashed, keeps its own.
func inSleep(asleep bool, d doc) doc {
	if asleep && (d["state"] == "RUNNING" || d["state"] == "DOWN") {
		d["state"] = sleeping
	}
	return d
}
