package logcache

// sharer makes envelopes that are read from files share their texts and tags, as those do that an instance has written since: most
// of what envelopes take are copies of a few names and tags.
type sharer struct {
	texts map[string]string
	tags  map[string]map[string]string // by their encoding
}

func newSharer() *sharer {
	return &sharer{texts: map[string]string{}, tags: map[string]map[string]string{}}
}

// share makes e use what an earlier envelope has.
func (s *sharer) share(e *Envelope) {
	e.SourceID, e.InstanceID = s.text(e.SourceID), s.text(e.InstanceID)
	e.Tags = s.sharedTags(e.Tags)
	for i := range e.Metrics {
		m := &e.Metrics[i]
		m.Name, m.Unit = s.text(m.Name), s.text(m.Unit)
	}
}

func (s *sharer) sharedTags(tags map[string]string) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	key := appendTags(takeBuffer(), "", tags)
	defer giveBuffer(key)
	if known, ok := s.tags[string(key)]; ok {
		return known
	}
	own := make(map[string]string, len(tags))
	for name, value := range tags {
		own[s.text(name)] = s.text(value)
	}
	s.tags[string(key)] = own
	return own
}

func (s *sharer) text(t string) string {
	if known, ok := s.texts[t]; ok {
		return known
	}
	s.texts[t] = t
	return t
}
