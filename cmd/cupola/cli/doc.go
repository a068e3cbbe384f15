// Package cli reads command lines into structs: each field is a flag, an argument
// or a command, as its tags say. pflag parses the flags.
//
// A field of a struct is
//
//   - a command, with `cmd:""`: a struct whose fields are the command's own.
//     What runs it is its method Run;
//   - an argument, with `arg:""`;
//   - part of the struct around it, if it is embedded, or has `embed:""`: then
//     `prefix:"tls-"` begins the names of its flags;
//   - nothing, with `flag:"-"`, or if it is not exported;
//   - a flag otherwise.
//
// The other tags:
//
//	name         the name; by default the field's, with dashes
//	help         one sentence
//	short        the flag's letter
//	aliases      further names of a command or a flag, with commas
//	default      the value if none is given. On a command: "withargs" runs it
//	             if none of its siblings is named
//	env          environment variables, with commas; the first that is set counts
//	placeholder  what stands for the value in help
//	required     the flag must be given
//	optional     the argument may be left out
//	enum         the values that are taken, with commas
//	sep          between the elements of a list, "," by default; "none" takes each as it is
//	mapsep       between the pairs NAME=VALUE of a map, ";" by default
//	bare         the value of a flag that is given without one, as --recent of --recent=10
//	negatable    a flag of two values has another one, --no-NAME
//	xor          of the flags with the same word, only one may be given
//	type         path: a file's, which becomes absolute; existingfile and
//	             existingdir: likewise, and it must be there ("-" is always)
//	hidden       help does not show it
//	group        the heading below which help shows a command
//
// A flag has the value of the command line, else of the configuration file, else
// of the environment, else its default.
//
// No method is looked up by its name: a program in which any function does so keeps
// all exported methods of all its types, which made cupola 35 MB larger.
package cli
