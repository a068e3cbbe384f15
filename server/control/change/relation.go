package change

// ToOne is a relationship to one thing.
type ToOne struct {
	Data *struct {
		GUID string `json:"guid"`
	} `json:"data"`
}

// GUID is the thing's; "" for none.
func (r ToOne) GUID() string {
	if r.Data == nil {
		return ""
	}
	return r.Data.GUID
}

// ToMany is a relationship to several things.
type ToMany struct {
	Data []struct {
		GUID string `json:"guid"`
	} `json:"data"`
}

// GUIDs are the things'.
func (r ToMany) GUIDs() (guids []string) {
	for _, d := range r.Data {
		guids = append(guids, d.GUID)
	}
	return guids
}

// Labels is a request that changes labels and annotations alone.
type Labels struct {
	Metadata *Metadata `json:"metadata"`
}
