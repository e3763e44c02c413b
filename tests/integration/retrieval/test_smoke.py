async def test_a_document_sent_over_the_bus_is_found(service, client):
    found = await client.ingest("doc", "The tortoise wins the race.\n\nThe hare sleeps under a tree.", name="Fables")
    assert found.status == "ready", found
    for mode in ("hybrid", "keyword", "vector"):
        result = await client.search("who wins the race?", mode=mode)
        print(mode, result)
        assert result.hits[0].document == "Fables"
    print(await client.search("the of and"))
