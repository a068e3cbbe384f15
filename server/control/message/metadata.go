package message

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cupola/runtime/pattern"
	"cupola/store/cf"
)

// Metadata checks "metadata": CC: app/messages/validators/metadata_validator.rb,
// which message classes with metadata run before anything else.
func Metadata(r *Request) {
	if !r.Has("metadata") {
		return
	}
	o, ok := r.Get("metadata").(*Object)
	if !ok {
		r.Add("metadata", "must be an object")
		return
	}
	if unknown := unknownKeys(o, []string{"labels", "annotations"}); len(unknown) > 0 {
		r.Add("metadata", "has unexpected field(s): '"+strings.Join(unknown, "' '")+"'")
	}
	r.entries(o, "labels", LabelFaults)
	r.entries(o, "annotations", AnnotationFaults)
}

func (r *Request) entries(o *Object, name string, faults func(key string, value *string) []string) {
	v := o.Get(name)
	if v == nil || v == false {
		return
	}
	entries, ok := v.(*Object)
	if !ok {
		r.Add("metadata", "'"+name+"' is not an object")
		return
	}
	for _, k := range entries.Keys {
		for _, f := range faults(k, textOf(entries.Values[k])) {
			r.Add("metadata", f)
		}
	}
}

// textOf is a value as text; nil for null.
func textOf(v any) *string {
	if v == nil {
		return nil
	}
	text := Text(v)
	return &text
}

// LabelFaults are what is wrong with a label.
func LabelFaults(key string, value *string) (faults []string) {
	if f := KeyFault(key); f != "" {
		faults = append(faults, "label key error: "+f)
	}
	if value != nil {
		if f := LabelValueFault(*value); f != "" {
			faults = append(faults, "label value error: "+f)
		} else if cf.IsSleepTime(key) {
			if _, err := cf.SleepTime(*value); err != nil {
				faults = append(faults, fmt.Sprintf("label value error: '%s' of '%s' %v", *value, key, err))
			}
		}
	}
	return faults
}

// maxAnnotation is how long an annotation may be, in characters.
const maxAnnotation = 5000

// AnnotationFaults are what is wrong with an annotation. The key of one without a
// value does not matter.
func AnnotationFaults(key string, value *string) (faults []string) {
	if value == nil {
		return nil
	}
	if f := KeyFault(key); f != "" && !Blank(*value) {
		faults = append(faults, "annotation key error: "+f)
	}
	if utf8.RuneCountInString(*value) > maxAnnotation {
		faults = append(faults, fmt.Sprintf("annotation value error: '%s...' is greater than %d characters", head(*value), maxAnnotation))
	}
	return faults
}

// DomainName is the expression of names of domains, and of the prefixes of keys of
// labels.
const DomainName = `(?i)^(([a-z0-9]|[a-z0-9][a-z0-9-]{0,61}[a-z0-9])\.)+([a-z0-9]|[a-z0-9][a-z0-9-]{0,61}[a-z0-9])$`

var (
	domainName    = pattern.Lazy(DomainName)
	nameCharacter = pattern.Lazy(`^[A-Za-z0-9_.-]*$`)
	alphanumEnds  = pattern.Lazy(`^[A-Za-z0-9](.*[A-Za-z0-9])?$`)
)

// Limits of keys and values, in characters.
const (
	maxName   = 63
	maxPrefix = 253
)

// KeyFault is what is wrong with the key of a label or an annotation, "" for
// nothing: CC: app/messages/metadata_validator_helper.rb.
func KeyFault(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	switch {
	case strings.TrimSpace(key) == "":
		return "key cannot be empty string"
	case strings.Count(key, "/") > 1:
		return "key has more than one '/'"
	case prefixed && !domainName().MatchString(prefix):
		return fmt.Sprintf("prefix '%s' must be in valid dns format", prefix)
	case utf8.RuneCountInString(prefix) > maxPrefix:
		return fmt.Sprintf("prefix '%s...' is greater than %d characters", head(prefix), maxPrefix)
	case strings.EqualFold(prefix, "cloudfoundry.org"):
		return "prefix 'cloudfoundry.org' is reserved"
	case strings.TrimSpace(name) == "":
		return "key cannot be empty string"
	}
	return nameFault(name)
}

// LabelValueFault is what is wrong with the value of a label, "" for nothing.
func LabelValueFault(value string) string {
	if value == "" {
		return ""
	}
	return nameFault(value)
}

func nameFault(name string) string {
	switch {
	case !nameCharacter().MatchString(name):
		return fmt.Sprintf("'%s' contains invalid characters", name)
	case !alphanumEnds().MatchString(name):
		return fmt.Sprintf("'%s' starts or ends with invalid characters", name)
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("'%s...' is greater than %d characters", head(name), maxName)
	}
	return ""
}

// head is the start of a text that is too long to show.
func head(s string) string {
	r := []rune(s)
	return string(r[:min(len(r), 8)])
}
