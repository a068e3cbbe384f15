// Command generate makes ../bbs.pb.go of ../bbs.proto with the compiler and the
// generator that its go.mod pins, so that it makes the same everywhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const source = "bbs.proto"

func main() {
	text, err := generate("..")
	if err == nil {
		err = os.WriteFile("../bbs.pb.go", []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate gives the Go source of the messages in dir.
func generate(dir string) (string, error) {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{dir}}, SourceInfoMode: protocompile.SourceInfoStandard}
	files, err := compiler.Compile(context.Background(), source)
	if err != nil {
		return "", err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{source}, ProtoFile: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])}}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return "", err
	}
	internal_gengo.GenerateFile(plugin, plugin.FilesByPath[source])
	response := plugin.Response()
	if response.Error != nil {
		return "", errors.New(*response.Error)
	}
	return response.File[0].GetContent(), nil
}
