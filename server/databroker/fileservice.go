package databroker

import (
	"slices"
	"sync"

	"cupola/examples"
	"cupola/server/databroker/servicefile"
)

// fileServices are the built-in services that service files describe. An operator's file of the same name replaces
// such a service: both have the same IDs, so that instances and bindings stay.
var fileServices = sync.OnceValue(func() (all []service) {
	for _, name := range examples.ServiceFiles {
		f, err := servicefile.Parse(name+".yml", examples.ServiceFile(name))
		if err != nil {
			panic(err) // the files are constant and valid
		}
		all = append(all, fileService(f))
	}
	return all
})

// fileService is the built-in service of a file, on a stack that is made of the file's image.
func fileService(f *servicefile.File) service {
	software := software{stack: Stack + "-" + f.Name, image: f.Image, program: "*"}
	f.Image = "preloaded:" + software.stack
	s := customService(f)
	s.software = software
	return s
}

// isFileService reports whether a service file describes a built-in service.
func isFileService(name string) bool {
	return slices.ContainsFunc(fileServices(), func(s service) bool { return s.name == name })
}

// ServiceImage is the image of a built-in service that has a stack for itself.
type ServiceImage struct{ Service, Reference, Stack string }

// Images splits names of built-in services into those that have images, and others.
func Images(names []string) (images []ServiceImage, others []string) {
	for _, name := range names {
		if s, ok := serviceOf(name); ok && s.software.image != "" {
			images = append(images, ServiceImage{s.name, s.software.image, s.software.stack})
		} else {
			others = append(others, name)
		}
	}
	return images, others
}

// Stacks are the stacks that built-in services run on.
func Stacks() []string {
	all := []string{Stack}
	for _, s := range fileServices() {
		all = append(all, s.software.stack)
	}
	return all
}
