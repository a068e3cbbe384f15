// Package bindings makes of an app's service bindings what the app gets of
// them: the variable VCAP_SERVICES, or files. It is pure.
//
// There are three kinds of files. FormVCAP is the variable in a file and FormK8s
// one directory for each binding, both byte for byte as Cloud Controller makes
// them (service_binding_files_builder.rb). FormServiceBindingIO is what RFC-0030
// says: as FormK8s, but with dashes for the underscores of attributes, and with
// the JSON of each credential that is not a string in its file, as libcnb writes it:
// also null, [] and {}, for which FormK8s has no file.
package bindings
