"""Where a checkpoint's files are: here, in the cache of huggingface_hub, or still on the hub."""

import json
import re
from pathlib import Path
from typing import Any

PICKLES = (".bin", ".pth", ".pt")
ENDINGS = (".safetensors", ".npz", ".json", *PICKLES)
INDEX = ".index.json"  # says in which of several files, the shards, each tensor is
HUB_FILES = (  # the better one first
    "model.safetensors",
    f"model.safetensors{INDEX}",
    "pytorch_model.bin",
    f"pytorch_model.bin{INDEX}",
)
SETTINGS = ("config.json", "preprocessor_config.json")
WAIT = 10  # seconds, for an answer of the hub


def find(source: str | Path, revision: str | None = None) -> Path:
    """The file of weights, or the index of its shards; from the hub where need be.

    ValueError where there is nothing, and for a revision where nothing comes from the hub.
    """
    path = Path(source).expanduser()
    if revision is not None and path.exists():
        raise ValueError(f"revision is {revision!r}, but {source} is here, not on the hub")
    if path.is_file():
        return path
    if not path.is_dir():
        is_name = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(source))
        if isinstance(source, Path) or not is_name or path.suffix in ENDINGS:
            raise ValueError(
                f"{source} is not there; give a file, a folder, or the id of a model on "
                'huggingface.co, such as "google/vit-base-patch16-224"'
            )
        path = download(str(source), revision)
    for name in HUB_FILES:
        if (path / name).is_file():
            return path / name
    raise ValueError(
        f"{source} holds no {' or '.join(HUB_FILES)}; another format "
        "(TensorFlow, Flax, ONNX, GGUF) is not read"
    )


def download(repo: str, revision: str | None = None) -> Path:
    """Bring what we need of a model on the hub into huggingface_hub's cache, and say where.

    ValueError where the hub cannot be reached and the model is not in the cache, or the hub has no
    such public model, or not that revision of it.
    """
    import huggingface_hub
    from huggingface_hub import errors

    unreachable, wanted = None, [*SETTINGS]
    try:
        try:
            # Asked first, since it takes a limit: snapshot_download waits without one.
            found = huggingface_hub.model_info(repo, revision=revision, timeout=WAIT).siblings
            wanted += needed([file.rfilename for file in found or ()])
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, ValueError):
            raise
        except Exception as error:  # whatever the layers below raise where there is no network
            unreachable = error
        known: Any = dict(allow_patterns=wanted, local_files_only=unreachable is not None)
        return Path(huggingface_hub.snapshot_download(repo, revision=revision, **known))
    except errors.GatedRepoError as error:
        raise ValueError(
            f"{repo} is given only to those who accept its terms: do that on huggingface.co, then "
            "log in here (hf auth login)"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ValueError(
            f"{repo} has no revision {revision!r} on huggingface.co; give a branch, a tag or a "
            "whole commit hash"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise ValueError(
            f"{repo} is no folder here, and huggingface.co has no public model of that name"
        ) from error
    except Exception as error:
        reason = " ".join(str(unreachable or error).split()) or type(error).__name__
        which = repo if revision is None else f"{repo} at revision {revision!r}"
        raise ValueError(
            f"{which} is not in the cache, and huggingface.co cannot be reached ({reason}); "
            "try again with a network, or give a file"
        ) from error


def needed(files: list[str]) -> list[str]:
    """Of a repository's files, those that hold the weights, in the best form that it has."""
    best = next((name for name in HUB_FILES if name in files), HUB_FILES[0])
    if not best.endswith(INDEX):
        return [best]
    start, ending = best.removesuffix(INDEX).rsplit(".", 1)
    shards = [name for name in files if re.fullmatch(rf"{start}-[\w-]+\.{ending}", name)]
    return [best, *shards]


def read_settings(path: Path) -> tuple[dict, dict]:
    """What config.json and preprocessor_config.json beside a file of weights say.

    What stands beside a file of a name of its own may be another model's: then nothing.
    """
    if path.name not in HUB_FILES:
        return {}, {}
    config, pictures = (read_json(path.parent / name) for name in SETTINGS)
    return config, pictures


def read_json(path: Path) -> dict:
    """What a JSON file says; nothing where there is none. ValueError for no JSON object."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not settings by name")
    return content
