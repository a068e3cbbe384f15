package store

import (
	"slices"
	"testing"

	"cupola/store/cf"
)

func TestStackUsers(t *testing.T) {
	s := openTest(t)
	_, space, _ := seed(t, s)
	on := func(stack, image string) cf.Lifecycle {
		l := cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: stack}
		if image != "" {
			l.Image = &cf.StackImage{Reference: image}
		}
		return l
	}
	write(t, s, func(tx *Tx) error {
		for _, a := range []struct {
			name, stack, droplet string
			current              bool
			task, build          string // of a task on the droplet; the stack of a build under way
		}{
			{name: "wants", stack: "old"}, {name: "runs", stack: "new", droplet: "old", current: true}, {name: "ran", stack: "new", droplet: "old"},
			{name: "tasks", stack: "new", droplet: "old", task: "RUNNING"}, {name: "tasked", stack: "new", droplet: "old", task: "FAILED"},
			{name: "stages", stack: "new", build: "old"}, {name: "pinned", stack: "docker://reg.io/a", droplet: "docker://reg.io/a"},
		} {
			app := &cf.App{Name: a.name, SpaceGUID: space.GUID, State: cf.Stopped, Lifecycle: on(a.stack, "")}
			if err := Apps.Insert(tx, app); err != nil {
				return err
			}
			if a.build != "" {
				if err := Builds.Insert(tx, &cf.Build{AppGUID: app.GUID, State: cf.BuildStaging, Lifecycle: on(a.build, "")}); err != nil {
					return err
				}
			}
			if a.droplet == "" {
				continue
			}
			d := &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Stack: a.droplet, Lifecycle: on(a.droplet, "")}
			if a.name == "pinned" {
				d.Lifecycle = on(a.droplet, a.droplet+"@sha256:12")
			}
			if err := Droplets.Insert(tx, d); err != nil {
				return err
			}
			if a.current {
				app.DropletGUID = d.GUID
				if err := Apps.Update(tx, app); err != nil {
					return err
				}
			}
			if a.task != "" {
				if err := Tasks.Insert(tx, &cf.Task{AppGUID: app.GUID, DropletGUID: d.GUID, SequenceID: 1, State: cf.TaskState(a.task)}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	read(t, s, func(tx *Tx) error {
		got, err := tx.StackUsers("old")
		if want := []string{"org/dev/runs", "org/dev/stages", "org/dev/tasks", "org/dev/wants"}; !slices.Equal(got, want) {
			t.Errorf("got %v; want %v", got, want)
		}
		if err != nil {
			return err
		}
		if got, err = tx.ImageUsers("sha256:12"); !slices.Equal(got, []string{"org/dev/pinned"}) {
			t.Errorf("got %v of an image", got)
		}
		if err != nil {
			return err
		}
		if got, err = tx.ImageUsers("sha256:1"); len(got) > 0 {
			t.Errorf("got %v of another image", got)
		}
		return err
	})
}
