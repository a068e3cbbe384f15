package manifest

// Addon is jobs that are placed on the instance groups that its rules pick.
type Addon struct {
	At
	Name             string
	Jobs             []*Job
	Include, Exclude *Placement // nil: not given
}

// Placement is a rule of an addon: every part that is given has to hold, each
// by any of its values.
type Placement struct {
	Stemcells      []Stemcell
	Deployments    []string
	Jobs           []PlacedJob
	InstanceGroups []string
	Networks       []string
	Teams          []string
	AZs            []string
	Lifecycle      Lifecycle
}

// PlacedJob is a job that a group has to have; an empty field is any.
type PlacedJob struct{ Name, Release string }

func addon(o *object) *Addon {
	a := &Addon{At: o.At, Name: o.text("name"), Include: placement(o.in("include")), Exclude: placement(o.in("exclude"))}
	o.each("jobs", "name", func(j *object) {
		placed := job(j)
		placed.Addon = a.Name
		a.Jobs = append(a.Jobs, placed)
	})
	return a
}

func placement(o *object) *Placement {
	if o == nil {
		return nil
	}
	defer o.done()
	p := &Placement{Deployments: o.texts("deployments"), InstanceGroups: o.texts("instance_groups"), Networks: o.texts("networks"), Teams: o.texts("teams"),
		AZs: o.texts("azs"), Lifecycle: Lifecycle(o.text("lifecycle"))}
	o.each("stemcell", "os", func(s *object) {
		p.Stemcells = append(p.Stemcells, Stemcell{At: s.At, OS: s.text("os"), Version: s.text("version")})
	})
	o.each("jobs", "name", func(j *object) { p.Jobs = append(p.Jobs, PlacedJob{j.text("name"), j.text("release")}) })
	return p
}
