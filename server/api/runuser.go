package api

import (
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// userOf is whom a process or a task runs as: the user that it asks for, else its
// lifecycle's. nil where that cannot be read.
func userOf(c *call, asked, appGUID string, dropletGUID func(*cf.App) string) any {
	if asked != "" {
		return asked
	}
	app, err := recall(c, store.Apps, appGUID)
	if err != nil {
		return nil
	}
	if app.Lifecycle.Type != cf.LifecycleDocker {
		return desire.User(app, nil)
	}
	d, err := recall(c, store.Droplets, dropletGUID(app))
	if err != nil && !store.IsNotFound(err) {
		return nil
	}
	return desire.User(app, d)
}

// foreseeUsers reads at once what userOf asks for. droplets are those of the apps.
func foreseeUsers(c *call, appGUIDs []string, droplets func(docker map[string]*cf.App) []string) error {
	rows, err := store.Apps.By(c.Tx, "guids", appGUIDs...)
	docker := map[string]*cf.App{}
	for _, app := range rows {
		c.remember(store.Apps.Name(), app.GUID, app)
		if app.Lifecycle.Type == cf.LifecycleDocker {
			docker[app.GUID] = app
		}
	}
	if err != nil || len(docker) == 0 {
		return err
	}
	return foresee(c, store.Droplets, func(d *cf.Droplet) string { return d.GUID }, droplets(docker))
}

func processUser(c *call, p *cf.Process) any {
	return userOf(c, p.User, p.AppGUID, func(app *cf.App) string { return desire.DropletGUID(p, app) })
}

func foreseeProcessUsers(c *call, processes []*cf.Process) error {
	return foreseeUsers(c, control.GUIDs(processes, func(p *cf.Process) string { return p.AppGUID }), func(docker map[string]*cf.App) (guids []string) {
		for _, p := range processes {
			if app := docker[p.AppGUID]; app != nil {
				guids = append(guids, desire.DropletGUID(p, app))
			}
		}
		return guids
	})
}

func taskUser(c *call, t *cf.Task) any {
	return userOf(c, t.User, t.AppGUID, func(*cf.App) string { return t.DropletGUID })
}

func foreseeTaskUsers(c *call, tasks []*cf.Task) error {
	return foreseeUsers(c, control.GUIDs(tasks, taskApp), func(docker map[string]*cf.App) (guids []string) {
		for _, t := range tasks {
			if docker[t.AppGUID] != nil {
				guids = append(guids, t.DropletGUID)
			}
		}
		return guids
	})
}
