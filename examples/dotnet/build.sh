#!/bin/sh
# Makes the directory publish with the .NET SDK. Arguments are dotnet publish's.
set -e
cd "$(dirname "$0")"
dotnet publish --configuration Release --output publish "$@"
