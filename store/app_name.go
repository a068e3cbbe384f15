package store

// AppName is what an app is called, and where it is.
type AppName struct{ Org, Space, App string }

func (n AppName) String() string { return n.Org + "/" + n.Space + "/" + n.App }

// AppNames returns the names of apps, by GUID. Apps that are gone have none.
func (tx *Tx) AppNames(guids []string) (map[string]AppName, error) {
	apps, err := Apps.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	var in []string
	for _, a := range apps {
		in = append(in, a.SpaceGUID)
	}
	spaces, err := Spaces.By(tx, "guids", in...)
	if err != nil {
		return nil, err
	}
	in = nil
	for _, s := range spaces {
		in = append(in, s.OrgGUID)
	}
	orgs, err := Orgs.By(tx, "guids", in...)
	orgName, of, names := map[string]string{}, map[string]AppName{}, map[string]AppName{}
	for _, o := range orgs {
		orgName[o.GUID] = o.Name
	}
	for _, s := range spaces {
		of[s.GUID] = AppName{orgName[s.OrgGUID], s.Name, ""}
	}
	for _, a := range apps {
		n := of[a.SpaceGUID]
		n.App = a.Name
		names[a.GUID] = n
	}
	return names, err
}
