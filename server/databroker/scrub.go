package databroker

import (
	"bytes"
	"context"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

// hidden comes in the place of a secret.
const hidden = "***"

// scrubber removes secrets from the log lines of an instance.
type scrubber struct {
	secrets *strings.Replacer
	quotes  []string
}

func (s scrubber) scrub(text []byte) []byte {
	for _, mark := range s.quotes {
		if before, _, ok := bytes.Cut(text, []byte(mark)); ok {
			text = append(bytes.Clone(before), mark+hidden...)
		}
	}
	return []byte(s.secrets.Replace(string(text)))
}

// Scrub returns a line that the server of an instance printed without secrets: passwords of bindings, secrets of the instance, and
// what the server quotes of requests. The built-in servers log no statements; operators' own may log anything.
func (s *Service) Scrub(instanceGUID string, text []byte) []byte {
	if s == nil {
		return text
	}
	all := s.broker.scrubbers.Load()
	if one, ok := (*all)[instanceGUID]; ok {
		return one.scrub(text)
	}
	return text
}

// scrubbers are those of all instances.
func scrubbers(tx *store.Tx) (map[string]scrubber, error) {
	instances, err := store.DataInstances.All(tx)
	if err != nil {
		return nil, err
	}
	bindings, err := store.DataBindings.All(tx)
	if err != nil {
		return nil, err
	}
	passwords := map[string][]string{} // by instance
	for _, b := range bindings {
		passwords[b.InstanceGUID] = append(passwords[b.InstanceGUID], b.Password)
	}
	all := map[string]scrubber{}
	for _, i := range instances {
		all[i.GUID] = scrubberOf(i, passwords[i.GUID])
	}
	return all, nil
}

func scrubberOf(i *cf.DataInstance, passwords []string) scrubber {
	secrets := append(passwords, i.Secret)
	s, _, _ := known(i)
	if e, ok := s.engine.(custom); ok {
		for _, name := range e.File.Secrets {
			secrets = append(secrets, e.secret(name))
		}
	}
	var pairs []string
	for _, secret := range secrets {
		if secret != "" {
			pairs = append(pairs, secret, hidden)
		}
	}
	return scrubber{strings.NewReplacer(pairs...), s.quotes}
}

// loadScrubbers makes the scrubbers of what is there already, before the first line comes.
func (b *broker) loadScrubbers(ctx context.Context) error {
	return b.Store.Read(ctx, func(tx *store.Tx) error {
		all, err := scrubbers(tx)
		if err == nil {
			b.scrubbers.Store(&all)
		}
		return err
	})
}

// keepScrubbers keeps the scrubbers current, until ctx ends.
func (b *broker) keepScrubbers(ctx context.Context) error {
	return store.Derive(ctx, b.Store, store.Derivation[map[string]scrubber]{Name: "secrets of service instances", Read: scrubbers, Log: b.Log,
		Use: store.Always(func(_ context.Context, all map[string]scrubber) error {
			b.scrubbers.Store(&all)
			return nil
		})})
}
