using System;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;

/// <summary>A web app with nothing but ASP.NET Core.</summary>
public static class Program
{
    private static long visits;
    private static int exitCode;

    // The host listens where ASPNETCORE_URLS says, and on SIGTERM finishes the requests in flight.
    public static int Main(string[] args)
    {
        Host.CreateDefaultBuilder(args)
            .ConfigureWebHostDefaults(web => web.Configure(app => app.Run(Answer)))
            .Build()
            .Run();
        return exitCode;
    }

    private static Task Answer(HttpContext context)
    {
        switch (context.Request.Path.Value)
        {
            case "/":
                return context.Response.WriteAsync(Greeting() + "\n");
            case "/health":
                return context.Response.WriteAsync("ok\n");
            case "/crash":
                Console.Error.WriteLine("was asked to crash");
                exitCode = 1;
                context.RequestServices.GetRequiredService<IHostApplicationLifetime>().StopApplication();
                return context.Response.WriteAsync("crashing\n");
            default:
                context.Response.StatusCode = StatusCodes.Status404NotFound;
                return context.Response.WriteAsync("not found\n");
        }
    }

    private static string Greeting()
    {
        string index = Environment.GetEnvironmentVariable("CF_INSTANCE_INDEX") ?? "0";
        return $"hello from hello-dotnet, instance {index}, visit {Interlocked.Increment(ref visits)}, .NET {Environment.Version}";
    }
}
